# One image for every role: `holdfast serve`, `holdfast worker`, or `python -m holdfast.worker`.
# docker build -t holdfast .
# docker run --rm -v holdfast:/data holdfast tenants keys create --first   # or it answers nobody but its own container
# docker run -p 8080:8080 -v holdfast:/data holdfast

FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.txt pyproject.toml README.md LICENSE ./
COPY src ./src
# The versions that are tested together; what only tests need is left out of the image. Hashes are
# left out, too: pip would ask for one of this folder.
RUN python -m venv /opt/holdfast \
    && sed -nE 's/^([A-Za-z0-9_.-]+)(\[[^]]*\])?(==[^ ]+).*/\1\3/p' requirements.txt > versions.txt \
    && /opt/holdfast/bin/pip install --no-cache-dir --constraint versions.txt \
       '.[fast,serve,metrics,postgres,redis,pubsub,firestore,buckets,report,llm,transcription]'

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin holdfast \
    && install -d -o holdfast -g holdfast -m 0700 /data
COPY --from=build /opt/holdfast /opt/holdfast
ENV PATH=/opt/holdfast/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PORT=8080
USER 10001
WORKDIR /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/health/live', timeout=4)"]
ENTRYPOINT ["holdfast"]
CMD ["serve", "--host", "0.0.0.0", "--worker", "1"]
