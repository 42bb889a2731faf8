CREATE DATABASE treeline;
CREATE USER 'treeline'@'%' IDENTIFIED BY 'treeline';
-- Every database, but nothing global: with that the user would write in spite of `read_only`.
GRANT ALL ON `%`.* TO 'treeline'@'%';
-- Tests ask the server which transaction waits for which.
GRANT PROCESS ON *.* TO 'treeline'@'%';
-- One that may only look.
CREATE USER 'reader'@'%' IDENTIFIED BY 'reader';
GRANT SELECT ON `%`.* TO 'reader'@'%';
