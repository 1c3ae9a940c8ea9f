# Sourced by the other scripts: makes virtual environments in the repository, each once for a given pyproject.toml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Hundreds of Pythons are started by the tests: without bytecode each one compiles all that it imports.
unset PYTHONDONTWRITEBYTECODE

complain() { printf '\n!! %s\n\n' "$*" >&2; }

# environment FOLDER SPARK EXTRAS [PACKAGE…] installs lakelog with EXTRAS; $python is then that environment's Python.
# `pinned` has what the versions of its libraries are to be, as arguments for the installer.
pinned=()
environment() {
    local folder=$1 spark=$2 extras=$3 base=${PYTHON:-python3} stamp wanted
    shift 3
    python=$PWD/$folder/bin/python stamp=$folder/.installed-${extras//,/-} wanted="$spark $(cksum <pyproject.toml) ${pinned[*]}"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version >/dev/null 2>&1 ||
        { complain "Java 17 or newer is needed: install a JRE and put java on PATH, or set JAVA_HOME."; exit 1; }
    "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        { complain "Python 3.11 or newer is needed: set PYTHON to one."; exit 1; }
    echo "Setting up $folder with Spark $spark (the first time takes a few minutes) …" >&2
    if command -v uv >/dev/null; then
        [ -x "$python" ] || uv venv --quiet --python "$base" "$folder"
        install() { uv pip install --quiet --compile-bytecode --python "$python" "$@"; }
    else
        [ -x "$python" ] || "$base" -m venv "$folder"
        install() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }
    fi
    install --editable ".[$extras]" "pyspark==$spark.*" "${pinned[@]}"
    if [ $# -gt 0 ]; then install --no-deps "$@"; fi
    echo "$wanted" >"$stamp"
}
