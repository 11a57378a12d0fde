"""The official Python client as an agent uses it: one session of a task's steps; what came of it goes to stdout as JSON.

    python3 client.py task.json

The task: {url, key, mode?} or {command: [program, …], mode?}; mode is "legacy" (initialize) or "auto" (2026-07-28 first).
Steps: [{tool, arguments} | {put} | {list: true}]. In arguments "$uploadUrl", "$runId" and "$workflowId" are replaced by what the
last answer that had one said.
"""

import asyncio
import json
import os
import re
import sys
import urllib.request

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


class Session:
    def __init__(self, client):
        self.client = client
        self.known = {}

    async def perform(self, step):
        if step.get("list"):
            return dump(await self.client.list_tools())
        if "put" in step:
            return {"status": await asyncio.to_thread(put, self.known["uploadUrl"], step["put"])}
        progress = []

        async def reported(done, total, message):
            progress.append({"progress": done, "total": total, "message": message})

        filled = json.dumps(step.get("arguments", {}))
        filled = re.sub(r"\$(\w+)", lambda name: self.known.get(name[1], name[0]), filled)
        try:
            result = await self.client.call_tool(step["tool"], json.loads(filled), progress_callback=reported)
        except MCPError as error:
            return {"refused": {"code": error.code, "message": error.message}}
        answer = dump(result)
        self.remember(answer.get("structuredContent") or {})
        return {**answer, "progress": progress}

    def remember(self, said):
        workflow_id = said.get("workflow", {}).get("id") or said.get("run", {}).get("workflowId")
        found = {"uploadUrl": said.get("uploadUrl"), "runId": said.get("runId"), "workflowId": workflow_id}
        self.known.update({name: value for name, value in found.items() if value})


def dump(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def put(url, path):
    with open(path, "rb") as file:
        request = urllib.request.Request(url, data=file.read(), method="PUT")
    with urllib.request.urlopen(request) as answer:
        return answer.status


def server(task, http):
    if "command" in task:
        program, *arguments = task["command"]
        return StdioServerParameters(command=program, args=arguments, env={**os.environ, **task.get("env", {})})
    return streamable_http_client(task["url"], http_client=http)


async def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        task = json.load(file)
    headers = {"authorization": f"Bearer {task.get('key', '')}"}
    async with httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30, read=300)) as http:
        async with Client(server(task, http), mode=task.get("mode", "auto")) as client:
            session = Session(client)
            done = [await session.perform(step) for step in task["steps"]]
            print(json.dumps({"protocol": client.protocol_version, "done": done}))


asyncio.run(main())
