# The operator and the command line in one image: docker build -t ghcr.io/crdkeeper/crdkeeper:0.1.0 .
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/crdkeeper
# Before the sources, so that a change to those does not install the dependencies again.
COPY requirements/runtime.txt /src/requirements/
RUN /opt/crdkeeper/bin/pip install --require-hashes -r /src/requirements/runtime.txt
COPY pyproject.toml README.md LICENSE /src/
COPY operator /src/operator
RUN /opt/crdkeeper/bin/pip install --no-deps /src \
    && /opt/crdkeeper/bin/pip uninstall --yes pip setuptools

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="crdkeeper" \
    org.opencontainers.image.description="Keeps a cluster's custom resource definitions over their whole life" \
    org.opencontainers.image.licenses="Apache-2.0"
# The root file system is read-only in the cluster: bytecode was compiled by the installation.
ENV PATH=/opt/crdkeeper/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
COPY --from=build /opt/crdkeeper /opt/crdkeeper
# By number, as the kubelet cannot tell from a name that it is not root.
USER 65532:65532
ENTRYPOINT ["crdkeeper"]
