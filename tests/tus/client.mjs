// Uploads a file with the official tus client and prints what became of it. The task is a JSON file:
// {endpoint, key, path, chunkSize?, metadata, withCreation?, deferred?}

import { createReadStream, readFileSync } from "node:fs";
import { PassThrough } from "node:stream";
import { Upload } from "tus-js-client";

const task = JSON.parse(readFileSync(process.argv[2], "utf8"));
const seen = { requests: 0, retries: 0, fileId: null };

// Behind the pipe no one sees a file, and its length.
const input = task.deferred ? createReadStream(task.path).pipe(new PassThrough()) : readFileSync(task.path);
const upload = new Upload(input, {
  endpoint: task.endpoint,
  headers: { Authorization: `Bearer ${task.key}` },
  metadata: task.metadata,
  chunkSize: task.chunkSize ?? Infinity,
  uploadDataDuringCreation: task.withCreation ?? false,
  uploadLengthDeferred: task.deferred ?? false,
  // The connection breaks all the time; the client restarts its count of retries whenever bytes were accepted.
  retryDelays: Array(1000).fill(5),
  onBeforeRequest() {
    seen.requests += 1;
  },
  onShouldRetry(error) {
    const status = error.originalResponse?.getStatus() ?? 0;
    seen.retries += 1;
    return status < 400 || status >= 500 || status === 409 || status === 423;
  },
  onAfterResponse(request, response) {
    seen.fileId = response.getHeader("Service-File-Id") ?? seen.fileId;
  },
  onError(error) {
    console.error(String(error));
    process.exit(1);
  },
  onSuccess() {
    console.log(JSON.stringify({ ...seen, url: upload.url }));
    process.exit(0);
  },
});
upload.start();
