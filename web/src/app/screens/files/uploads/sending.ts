/** One file by tus, and how far an upload is that was begun before. */
import type { DetailedError } from "tus-js-client";
import { address } from "../../../api/base";
import { api, currentSession } from "../../../api/client";
import { ApiError, errorOf, NO_CONNECTION } from "../../../api/error";
import { session, signedIn, signedInAgain } from "../../../api/session";

const PATH = "/api/uploads/tus";
/** Proxies that keep a request until they have it whole lose no more than this when it breaks. */
const CHUNK_BYTES = 64 * 1024 * 1024;
const RETRY_DELAYS_MS = [0, 1_000, 3_000, 5_000];

interface ResumableUpload {
  id: string;
  filename: string;
  folderId: string | null;
  sizeBytes: number | null;
  offsetBytes: number;
  status: "receiving" | "completed";
  fileId: string | null;
}

export interface Begun {
  id: string;
  name: string;
  size: number;
  sent: number;
  folder: string | null;
  /** Set when it has become a file that is still there. */
  fileId: string | null;
}

/** An upload that can be continued or is a file by now; null when it is neither. */
export async function resumable(id: string): Promise<Begun | null> {
  try {
    const { upload } = await api.get<{ upload: ResumableUpload }>(`${PATH}/${encodeURIComponent(id)}`);
    if (upload.status === "completed" && !upload.fileId) return null;
    return {
      id,
      name: upload.filename,
      size: upload.sizeBytes ?? 0,
      sent: upload.offsetBytes,
      folder: upload.folderId,
      fileId: upload.fileId,
    };
  } catch (thrown) {
    if (thrown instanceof ApiError && (thrown.status === 404 || thrown.status === 410)) return null;
    throw thrown;
  }
}

interface Sending {
  file: File;
  folder: string | null;
  resume: string | undefined;
  onId: (id: string) => void;
  onSent: (bytes: number) => void;
  /** How many requests are left to the session's uploads until then (Unix seconds); not called where there is no bound. */
  onLimit: (remaining: number, resetsAt: number) => void;
  onStop: (stop: () => void) => void;
  isStopped: () => boolean;
}

/** Sends a file; resolves with the id of its upload when it is stored. */
export async function send(sending: Sending): Promise<string | undefined> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await once(sending);
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || attempt > 2 || sending.isStopped()) throw thrown;
      if (thrown.status === 401) await signedInAgain();
      else if (thrown.status !== 403 || !(await isOfAnotherSession())) throw thrown;
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

async function once({ file, folder, resume, onId, onSent, onLimit, onStop, isStopped }: Sending) {
  const { Upload } = await import("tus-js-client");
  if (isStopped()) throw new ApiError(0, NO_CONNECTION);
  const endpoint = new URL(address(PATH), location.href).href;
  return new Promise<string | undefined>((resolve, reject) => {
    let id = resume;
    const upload = new Upload(file, {
      endpoint,
      uploadUrl: resume ? `${endpoint}/${resume}` : null,
      metadata: { filename: file.name, ...(folder ? { folderId: folder } : {}) },
      chunkSize: CHUNK_BYTES,
      retryDelays: RETRY_DELAYS_MS,
      storeFingerprintForResuming: false,
      onBeforeRequest: (request) => request.setHeader("x-csrf-token", session.peek()?.csrfToken ?? ""),
      onAfterResponse: (_request, response) => {
        const remaining = Number(response.getHeader("x-ratelimit-remaining") ?? Number.NaN);
        if (Number.isFinite(remaining)) onLimit(remaining, Number(response.getHeader("x-ratelimit-reset")));
      },
      onUploadUrlAvailable: () => {
        // The service names itself by an address of its own, which need not be that of this page
        id = new URL(upload.url ?? endpoint).pathname.split("/").at(-1);
        upload.url = `${endpoint}/${id}`;
        if (id) onId(id);
      },
      onProgress: onSent,
      onShouldRetry: (error) => {
        const status = (error as DetailedError).originalResponse?.getStatus() ?? 0;
        return status === 0 || status === 409 || status === 423 || status === 500 || status === 502;
      },
      onSuccess: () => resolve(id),
      onError: (error) => reject(asError(error as DetailedError)),
    });
    onStop(() => {
      void upload.abort();
      reject(new ApiError(0, NO_CONNECTION));
    });
    upload.start();
  });
}

function asError({ originalResponse: response, message }: DetailedError): ApiError {
  if (!response) return new ApiError(0, message && !message.startsWith("tus") ? message : NO_CONNECTION);
  return errorOf(response.getStatus(), response.getHeader("retry-after") ?? null, response.getBody());
}
