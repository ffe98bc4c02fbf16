# Sourced in the root of the project: NVRTC from a virtual environment of its own, in LMSC_CUDA_PATH. Needs python3 and a package
# index, but no GPU.
nvrtc_venv=target/nvrtc-venv
LMSC_NVRTC=nvidia-cuda-nvrtc==13.0.88
if [[ "$(cat "$nvrtc_venv/package" 2>/dev/null)" != "$LMSC_NVRTC" ]]; then
    rm -rf "$nvrtc_venv"
    mkdir -p target
    "${PYTHON:-python3}" -m venv "$nvrtc_venv"
    "$nvrtc_venv/bin/pip" install --quiet --disable-pip-version-check "$LMSC_NVRTC"
    # Last, so that an interrupted installation is begun anew.
    echo "$LMSC_NVRTC" >"$nvrtc_venv/package"
fi

LMSC_CUDA_PATH="$(echo "$PWD/$nvrtc_venv"/lib/python3*/site-packages/nvidia/*/lib | tr ' ' ':')"
export LMSC_CUDA_PATH LMSC_NVRTC
