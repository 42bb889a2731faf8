#!/bin/sh
# Makes the data directory while the image is built, so that a container starts at once.
set -eu

install -d -o mysql /data /run/mysqld
mariadb-install-db --user=mysql --datadir=/data --skip-test-db --auth-root-authentication-method=normal
mariadbd --user=mysql --datadir=/data --bootstrap </setup.sql
