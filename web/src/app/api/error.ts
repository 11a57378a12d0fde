/** The body of every error of the API. */
export interface ErrorBody {
  error: string;
  code?: string;
  detail?: unknown;
  version?: number;
  upgradeUrl?: string;
}

/** A request that was not answered as wished; `message` is a sentence for the user. Status 0: there was no answer. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    readonly status: number,
    message: string,
    readonly code?: string,
    /** Seconds after which the same request may succeed. */
    readonly retryAfter?: number,
    /** The field of the request that the message is about, in camelCase. */
    readonly field?: string,
    readonly body?: ErrorBody,
  ) {
    super(message);
  }
}

export const NO_CONNECTION = "There is no connection to the service: check that it runs, and try again";

/** The error in an answer. */
export function errorOf(status: number, retryAfter: string | null, text: string): ApiError {
  const body = parsed(text);
  const message = body ? sentence(body.error) : `The service answered with status ${status}`;
  const seconds = retryAfter && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined;
  return new ApiError(status, message, body?.code, seconds, body && fieldOf(body.error), body);
}

/** Anything that was thrown, as an error of the API. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  return new ApiError(0, thrown instanceof Error ? thrown.message : String(thrown));
}

export const isAborted = (thrown: unknown) => thrown instanceof DOMException && thrown.name === "AbortError";

function parsed(text: string): ErrorBody | undefined {
  try {
    const body = JSON.parse(text);
    return typeof body?.error === "string" ? body : undefined;
  } catch {
    return undefined;
  }
}

/** The API's messages name the field first: "name must have at most 200 characters", "`allowedDomains[1]` is no host name". */
export function fieldOf(message: string): string | undefined {
  const name = /^`?([a-z][A-Za-z0-9]*(?:_[a-z0-9]+)*)(?:[[.][^ ]*)?`?[ :,]/.exec(message)?.[1];
  return name?.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Messages of the API begin in lower case, except with a name. */
function sentence(message: string): string {
  return /^[a-z][a-z]* /.test(message) ? (message[0] ?? "").toUpperCase() + message.slice(1) : message;
}
