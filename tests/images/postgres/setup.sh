#!/bin/sh
# Makes the data directory while the image is built, so that a container starts at once.
set -eu

initdb --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256
echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
postgres --single -c exit_on_error=on postgres <<'END'
CREATE ROLE treeline LOGIN CREATEDB PASSWORD 'treeline'
CREATE DATABASE treeline OWNER treeline
END
