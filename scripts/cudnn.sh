# Sourced in the root of the project: cuDNN from a virtual environment of its own, first in LMSC_CUDA_PATH. Needs python3 and a
# package index, but no GPU.
cudnn_venv=target/cudnn-venv
cudnn_packages="nvidia-cudnn-cu13==9.19.0.56 nvidia-cublas==13.10.0.20"
if [[ "$(cat "$cudnn_venv/packages" 2>/dev/null)" != "$cudnn_packages" ]]; then
    rm -rf "$cudnn_venv"
    mkdir -p target
    "${PYTHON:-python3}" -m venv "$cudnn_venv"
    # cuDNN loads cuBLAS. Without a device, the libraries that cuBLAS loads in turn are not needed.
    # shellcheck disable=SC2086
    "$cudnn_venv/bin/pip" install --quiet --disable-pip-version-check --no-deps $cudnn_packages
    # Last, so that an interrupted installation is begun anew.
    echo "$cudnn_packages" >"$cudnn_venv/packages"
fi

LMSC_CUDA_PATH="$(echo "$PWD/$cudnn_venv"/lib/python3*/site-packages/nvidia/*/lib | tr ' ' ':')${LMSC_CUDA_PATH:+:$LMSC_CUDA_PATH}"
export LMSC_CUDA_PATH
