/** Sending of a form with its progress, which `fetch` does not report. */
import { address } from "../../api/base";
import { recordCall } from "../../api/calls";
import { api, currentSession } from "../../api/client";
import { connectionFailed } from "../../api/connection";
import { ApiError, errorOf, NO_CONNECTION } from "../../api/error";
import { session, signedIn, signedInAgain } from "../../api/session";
import type { Request } from "./request";

interface Sending extends Request {
  onSent: (share: number) => void;
  signal: AbortSignal;
}

/** Sends a request; a form says how much of it has gone out. After the end of the session it is sent again. */
export async function send<T>({ path, body, onSent, signal }: Sending): Promise<T> {
  if (!(body instanceof FormData)) return api.post<T>(path, body, { signal });
  for (let attempt = 0; ; attempt++) {
    try {
      const answer = await once<T>(path, body, onSent, signal);
      recordCall({ method: "POST", path: address(path), body });
      return answer;
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || attempt > 1) throw thrown;
      if (thrown.status === 401) await signedInAgain();
      else if (thrown.status !== 403 || !(await isOfAnotherSession())) throw thrown;
      signal.throwIfAborted();
    }
  }
}

/** Whether this tab's token belongs to an older session than the cookie. */
async function isOfAnotherSession(): Promise<boolean> {
  const now = await currentSession();
  if (!now || now.csrfToken === session.peek()?.csrfToken) return false;
  signedIn(now);
  return true;
}

function once<T>(path: string, body: FormData, onSent: (share: number) => void, signal: AbortSignal) {
  return new Promise<T>((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    signal.addEventListener("abort", abort, { once: true });
    request.open("POST", address(path));
    request.setRequestHeader("accept", "application/json");
    request.setRequestHeader("x-csrf-token", session.peek()?.csrfToken ?? "");
    request.upload.addEventListener("progress", ({ loaded, total }) =>
      onSent(total > 0 ? loaded / total : 0),
    );
    request.addEventListener("loadend", () => signal.removeEventListener("abort", abort));
    request.addEventListener("abort", () => reject(new DOMException("Aborted", "AbortError")));
    request.addEventListener("error", () => {
      connectionFailed();
      reject(new ApiError(0, NO_CONNECTION));
    });
    request.addEventListener("load", () => {
      const { status, responseText: text } = request;
      if (status >= 200 && status < 300) resolve(JSON.parse(text) as T);
      else reject(errorOf(status, request.getResponseHeader("retry-after"), text));
    });
    request.send(body);
  });
}
