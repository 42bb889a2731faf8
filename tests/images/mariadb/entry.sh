#!/bin/sh
# Runs the server as process 1; arguments are the server's own, such as `--wsrep-on=ON`.
# It is ready at the log line "ready for connections".
set -eu

if [ "${TREELINE_FAST:-}" = 1 ]; then
    set -- --innodb-flush-log-at-trx-commit=0 --innodb-flush-method=nosync "$@"
fi
# Names of clients are not looked up: a container's network may have nobody to answer.
exec mariadbd --user=mysql --datadir=/data --bind-address=0.0.0.0 --skip-name-resolve "$@"
