#!/bin/sh
# Makes the data directory while the image is built, so that a container starts at once.
set -eu

mariadb-install-db --datadir=/data --skip-test-db --auth-root-authentication-method=normal
mariadbd --datadir=/data --bootstrap </setup.sql
