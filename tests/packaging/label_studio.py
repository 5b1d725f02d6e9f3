"""One round of labelling with a real server of Label Studio; run by hand, not by ``make test``.

    pip install label-studio  # in an environment of its own
    LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN=true label-studio start --no-browser --port 8080 \
        --username a@b.co --password password123 --user-token TOKEN
    python tests/packaging/label_studio.py http://localhost:8080 TOKEN tasks.json gold.json out.json

It makes a project, imports the tasks, tells how many predictions the server shows, annotates them
with the gold entities of another file of tasks, and exports the project.
"""

import json
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen


def ask(url: str, token: str, content: Any = None) -> Any:
    """Return what the server answers to GET, or to POST with content."""
    data = None if content is None else json.dumps(content).encode()
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    with urlopen(Request(url, data, headers)) as answer:
        return json.load(answer)


def main(server: str, token: str, *files: str) -> None:
    tasks, gold = (json.loads(Path(file).read_text("utf-8")) for file in files[:2])
    results = {task["data"]["text"]: task["annotations"][0]["result"] for task in gold}
    found = [region for rows in results.values() for region in rows]
    labels = sorted({label for region in found for label in region["value"]["labels"]})
    shown = "".join(f'<Label value="{label}"/>' for label in labels)
    view = f'<View><Labels name="label" toName="text">{shown}</Labels>'
    view += '<Text name="text" value="$text"/></View>'
    project = ask(f"{server}/api/projects", token, {"title": "skdice", "label_config": view})["id"]
    imported = ask(f"{server}/api/projects/{project}/import?return_task_ids=true", token, tasks)
    n_regions = 0
    for number in imported["task_ids"]:
        task = ask(f"{server}/api/tasks/{number}", token)
        n_regions += sum(len(prediction["result"]) for prediction in task["predictions"])
        result = results[task["data"]["text"]]
        ask(f"{server}/api/tasks/{number}/annotations", token, {"result": result, "lead_time": 1.0})
    Path(files[2]).write_text(
        json.dumps(ask(f"{server}/api/projects/{project}/export?exportType=JSON", token))
    )
    sys.stdout.write(f"{len(imported['task_ids'])} tasks with {n_regions} predicted regions\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
