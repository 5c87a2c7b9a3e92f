#!/usr/bin/env bash
# Makes .venv-browsergym, the environment of benchmarks/browsergym_speed.py. A second call does nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=.venv-browsergym
REQUIREMENTS=benchmarks/browsergym_requirements.txt
STAMP=$VENV/.advsim-packages

hash=$({ pwd; cat "$REQUIREMENTS"; } | sha256sum | cut -d' ' -f1)
if [ -x $VENV/bin/python ] && [ "$(cat $STAMP 2>/dev/null)" = "$hash" ]; then exit 0; fi

# The old playwright needs a greenlet that has no build for Python 3.13 and newer.
for python in "${PYTHON:-python3}" python3.12 python3.11; do
    if "$python" -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; then
        echo "making $VENV with $("$python" --version)" >&2
        rm -rf $VENV
        "$python" -m venv $VENV
        $VENV/bin/python -m pip --disable-pip-version-check --no-input --retries 10 install -q -r "$REQUIREMENTS"
        echo "$hash" >$STAMP
        exit 0
    fi
done
echo "BrowserGym needs Python 3.11 or 3.12 with venv; name one: PYTHON=/path/to/python3.12 make bench-browsergym" >&2
exit 1
