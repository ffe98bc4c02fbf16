# Sourced in the root of the project: the Python package, installed into a virtual environment of its own, `$venv`. Needs python3.11,
# cargo and a package index.
venv="${CARGO_TARGET_DIR:-target}/python-venv"
wheels="${CARGO_TARGET_DIR:-target}/python-wheels"
requirements=scripts/requirements-python.txt
if ! cmp --silent "$requirements" "$venv/requirements.txt"; then
    rm -rf "$venv"
    "${PYTHON:-python3.11}" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps --requirement "$requirements"
    # Last, so that an interrupted installation is begun anew.
    cp "$requirements" "$venv/requirements.txt"
fi

# With the settings of `cargo test`, of whose crates most are the same.
rm -rf "$wheels"
"$venv/bin/maturin" build --quiet --profile dev --manifest-path python/Cargo.toml --out "$wheels" --interpreter "$venv/bin/python"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall "$wheels"/*.whl
