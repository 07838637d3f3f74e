# The operator and the command line in one image: docker build -t ghcr.io/crdkeeper/crdkeeper:0.1.0 .
# A release passes the base by its digest: --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:…
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONHASHSEED=0
# pip and setuptools stay in a virtual environment of their own, which does not get into the image.
RUN python -m venv /opt/build && python -m venv --without-pip /opt/crdkeeper
# Before the sources, so that a change to those does not download the dependencies again.
COPY requirements/build.txt requirements/runtime.txt /src/requirements/
RUN /opt/build/bin/pip install --require-hashes --only-binary :all: -r /src/requirements/build.txt \
    && /opt/build/bin/pip download --require-hashes --only-binary :all: \
        -r /src/requirements/runtime.txt --dest /opt/wheels
COPY pyproject.toml README.md LICENSE /src/
COPY operator /src/operator
# The time that the wheel gives its files, and with it the wheel's hash, follow from the commit.
ARG SOURCE_DATE_EPOCH
RUN chmod -R u=rwX,go=rX /src \
    && /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheels /src
# From files, as pip then records the hash of each (direct_url.json), which the SBOM is made of.
RUN /opt/build/bin/pip --python /opt/crdkeeper/bin/python install --no-index --no-deps --no-compile /opt/wheels/*.whl
# The root file system is read-only in the cluster, and Python's own images come without bytecode: what is
# not compiled here is compiled at each start. By hash, unchecked: the times of files say nothing in an image.
RUN PYTHONPYCACHEPREFIX=/opt/crdkeeper/bytecode /opt/crdkeeper/bin/python -m compileall -q \
        --invalidation-mode unchecked-hash -x '/(test|tests|idlelib|lib2to3|turtledemo|site-packages)/' \
        "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
    && PYTHONPYCACHEPREFIX=/opt/crdkeeper/bytecode /opt/crdkeeper/bin/python -m compileall -q \
        --invalidation-mode unchecked-hash /opt/crdkeeper/lib

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="crdkeeper" \
    org.opencontainers.image.description="Keeps a cluster's custom resource definitions over their whole life" \
    org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/crdkeeper/bin:$PATH PYTHONPYCACHEPREFIX=/opt/crdkeeper/bytecode PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=build /opt/crdkeeper /opt/crdkeeper
# By number, as the kubelet cannot tell from a name that it is not root.
USER 65532:65532
ENTRYPOINT ["crdkeeper"]
