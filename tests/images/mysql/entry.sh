#!/bin/sh
# Runs the server as process 1; arguments are the server's own, such as `--sql-mode=`.
# It is ready at the log line "ready for connections".
set -eu

if [ "${TREELINE_FAST:-}" = 1 ]; then
    set -- --innodb-flush-log-at-trx-commit=0 --sync-binlog=0 "$@"
fi
# Names of clients are not looked up: a container's network may have nobody to answer.
# The second protocol is off because nothing uses it, and its "ready" comes before the server's.
exec mysqld --no-defaults --user=mysql --datadir=/data --skip-name-resolve --mysqlx=OFF "$@"
