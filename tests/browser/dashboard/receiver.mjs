// A webhook receiver on this machine: keeps what it gets, answers as it is set to, and verifies by both schemes.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

export class Receiver {
  /** In their order: {method, url, headers, body}, the body as bytes. */
  requests = [];
  status = 204;
  answer = "";
  #waiting = new Set();

  /** Listens on a free port of loopback. */
  static async open() {
    const receiver = new Receiver();
    receiver.server = createServer((request, response) => receiver.#take(request, response));
    await new Promise((resolve) => receiver.server.listen(0, "127.0.0.1", resolve));
    receiver.url = `http://127.0.0.1:${receiver.server.address().port}`;
    return receiver;
  }

  async #take(request, response) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url, headers } = request;
    this.requests.push({ method, url, headers, body: Buffer.concat(chunks) });
    response.writeHead(this.status, { "content-type": "text/html" }).end(this.answer);
    for (const look of this.#waiting) look();
  }

  /** The first request from number `from` on that `fits`, once it has come; its event is parsed. */
  async got(fits, from = 0, deadlineMs = 60_000) {
    const find = () => {
      for (const request of this.requests.slice(from)) {
        const event = JSON.parse(request.body);
        if (fits(event, request)) return { ...request, event };
      }
    };
    const found = find();
    if (found) return found;
    return new Promise((resolve, reject) => {
      const seen = () => this.requests.map(({ body }) => JSON.parse(body).type).join();
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`the receiver did not get it within ${deadlineMs} ms; it has ${seen()}`));
      }, deadlineMs);
      const look = () => {
        const request = find();
        if (!request) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(request);
      };
      this.#waiting.add(look);
    });
  }

  close() {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(resolve));
  }
}

/** Whether one signature of each scheme is by the secret: {standard, service}. */
export function verified({ headers, body }, secret) {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const { "webhook-id": id, "webhook-timestamp": at } = headers;
  const standard = createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64");
  const parts = headers["service-signature"].split(",").map((part) => part.trim().split("="));
  const t = parts.find(([name]) => name === "t")[1];
  const hex = createHmac("sha256", secret).update(`${t}.`).update(body).digest("hex");
  return {
    standard: headers["webhook-signature"]
      .split(" ")
      .some((given) => given.startsWith("v1,") && equal(given.slice(3), standard)),
    service: parts.some(([name, value]) => name === "v1" && equal(value, hex)),
  };
}

function equal(given, expected) {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
