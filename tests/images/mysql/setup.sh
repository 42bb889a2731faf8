#!/bin/sh
# Makes the data directory while the image is built, so that a container starts at once.
set -eu

useradd --system mysql
install -d -o mysql -m 750 /data /run/mysqld /var/lib/mysql-files
mysqld --no-defaults --user=mysql --datadir=/data --initialize-insecure --init-file=/setup.sql
# Without it each server draws an identity of its own.
rm /data/auto.cnf
