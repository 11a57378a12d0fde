/** The service's API for the signed-in user: JSON in, JSON out, errors as `ApiError`. */
import { address, type Query } from "./base";
import { recordCall } from "./calls";
import { connectionFailed, offlineSince } from "./connection";
import { ApiError, errorOf, isAborted, NO_CONNECTION } from "./error";
import { type Session, session, signedIn, signedInAgain } from "./session";

export interface Options {
  query?: Query;
  signal?: AbortSignal;
  /** A 401 is an answer here, not the end of the session. */
  anonymous?: boolean;
  headers?: Record<string, string>;
}

export const api = {
  get: <T>(path: string, options?: Options) => send<T>("GET", path, undefined, options),
  post: <T>(path: string, body?: unknown, options?: Options) => send<T>("POST", path, body, options),
  put: <T>(path: string, body?: unknown, options?: Options) => send<T>("PUT", path, body, options),
  patch: <T>(path: string, body?: unknown, options?: Options) => send<T>("PATCH", path, body, options),
  delete: <T>(path: string, options?: Options) => send<T>("DELETE", path, undefined, options),
};

async function send<T>(method: string, path: string, body: unknown, options: Options = {}): Promise<T> {
  const isChange = method !== "GET";
  if (isChange && offlineSince.peek()) throw new ApiError(0, NO_CONNECTION);
  let response = await request(method, path, body, options);
  if (response.status === 401 && !options.anonymous) {
    await signedInAgain();
    options.signal?.throwIfAborted();
    response = await request(method, path, body, options);
  } else if (response.status === 403 && isChange && (await isOfAnotherSession())) {
    response = await request(method, path, body, options);
  }
  const text = await response.text();
  if (!response.ok) throw errorOf(response.status, response.headers.get("retry-after"), text);
  recordCall({ method, path: address(path, options.query), body });
  return (text ? JSON.parse(text) : undefined) as T;
}

async function request(method: string, path: string, body: unknown, options: Options): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", ...options.headers };
  const token = session.peek()?.csrfToken;
  if (method !== "GET" && token) headers["x-csrf-token"] = token;
  const isJson = body !== undefined && !(body instanceof FormData || body instanceof Blob);
  if (isJson) headers["content-type"] = "application/json";
  try {
    return await fetch(address(path, options.query), {
      method,
      headers,
      body: isJson ? JSON.stringify(body) : ((body as FormData | Blob | undefined) ?? null),
      signal: options.signal ?? null,
      credentials: "same-origin",
    });
  } catch (thrown) {
    if (isAborted(thrown)) throw thrown;
    connectionFailed();
    throw new ApiError(0, NO_CONNECTION);
  }
}

/** Whether this tab's token belongs to an older session than the cookie: the user signed in again in another tab. */
async function isOfAnotherSession(): Promise<boolean> {
  const before = session.peek()?.csrfToken;
  const now = await currentSession();
  if (!now || now.csrfToken === before) return false;
  signedIn(now);
  return true;
}

/** The session of this browser, or null. */
export async function currentSession(): Promise<Session | null> {
  try {
    return await send<Session>("GET", "/api/session", undefined, { anonymous: true });
  } catch (thrown) {
    if (thrown instanceof ApiError && thrown.status === 401) return null;
    throw thrown;
  }
}
