"""What is generated: pure functions from a job to files. The same job gives the same files."""

from __future__ import annotations

import json
from html import escape

from compute_job import ComputeJob

Files = dict[str, str]
"""Path inside the repository → content."""


def api_files(job: ComputeJob) -> Files:
    title, pages = json.dumps(job.microservice_id), json.dumps(list(job.menus))
    return {
        "app/main.py": f'''"""Service {job.microservice_id}, generated for instance {job.instance_id}."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

app = FastAPI(title={title})
PAGE = Path(__file__).with_name("page.html")


@app.get("/health")
def health() -> dict[str, str]:
    return {{"status": "ok"}}


@app.get("/menus")
def menus() -> list[str]:
    return {pages}


@app.get("/", response_class=HTMLResponse)
def page() -> str:
    return PAGE.read_text() if PAGE.exists() else ""
''',
        "requirements.txt": "fastapi\nuvicorn\n",
    }


def frontend_files(job: ComputeJob) -> Files:
    items = "".join(f"<li>{escape(menu)}</li>" for menu in job.menus)
    title = escape(job.microservice_id)
    return {
        "app/page.html": f"<!doctype html>\n<html lang=en><meta "
        f"charset=utf-8><title>{title}</title>"
        f"\n<h1>{title}</h1>\n<ul>{items}</ul>\n</html>\n"
    }


def devops_files(job: ComputeJob) -> Files:
    return {
        "Dockerfile": "FROM python:3.12-slim\nWORKDIR /srv\nCOPY . .\n"
        "RUN pip install --no-cache-dir -r requirements.txt\nUSER nobody\nEXPOSE 8080\n"
        'CMD ["uvicorn", "app.main:app", "--host", "0.0.0.0", "--port", "8080"]\n',
        ".github/workflows/ci.yml": f"name: {job.microservice_id}\non: [push]\njobs:\n  build:\n"
        "    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n"
        "      - run: docker build .\n",
    }
