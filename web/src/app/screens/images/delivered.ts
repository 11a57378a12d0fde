/** An image as the delivery answers it: fetched as a page would, with what its headers say. */
import { useEffect, useState } from "preact/hooks";
import { BASE } from "../../api/base";
import { connectionFailed } from "../../api/connection";
import { ApiError, errorOf, isAborted, NO_CONNECTION } from "../../api/error";

export interface Delivered {
  /** Without parameters: `image/webp`. */
  type: string;
  bytes: number;
  /** The header X-Cache, which says how it was made. */
  cache: string;
  ms: number;
  /** Of an image; else what was answered as text. */
  url?: string;
  text?: string;
}

export const BROWSER = "image/avif,image/webp,image/*,*/*;q=0.8";

const PAUSE_MS = 350;
const MOST_TEXT = 4_000;

/** Never from the browser's own cache: X-Cache and the time are then those of now. */
export async function deliver(path: string, accept: string, signal: AbortSignal): Promise<[Delivered, Blob]> {
  const begin = performance.now();
  let answer: Response;
  let body: Blob;
  try {
    answer = await fetch(BASE + path, {
      headers: { accept },
      cache: "no-store",
      credentials: "omit",
      signal,
    });
    body = await answer.blob();
  } catch (thrown) {
    if (isAborted(thrown)) throw thrown;
    connectionFailed();
    throw new ApiError(0, NO_CONNECTION);
  }
  if (!answer.ok) throw errorOf(answer.status, answer.headers.get("retry-after"), await body.text());
  const type = (answer.headers.get("content-type") ?? "").split(";")[0]?.trim() ?? "";
  const cache = answer.headers.get("x-cache") ?? "–";
  return [{ type, bytes: body.size, cache, ms: Math.round(performance.now() - begin) }, body];
}

interface State {
  data?: Delivered | undefined;
  error?: ApiError | undefined;
  isLoading: boolean;
}

/** What an address delivers, a moment after it has last changed; the image before stays until the next is there. */
export function useDelivered(path: string | undefined): State & { again: () => void } {
  const [state, setState] = useState<State>({ isLoading: false });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!path) return setState({ isLoading: false });
    const abort = new AbortController();
    setState((before) => ({ data: before.data, isLoading: true }));
    const timer = setTimeout(async () => {
      try {
        const [data, body] = await deliver(path, BROWSER, abort.signal);
        if (data.type.startsWith("image/")) data.url = URL.createObjectURL(body);
        else data.text = (await body.text()).slice(0, MOST_TEXT);
        if (abort.signal.aborted) return data.url && URL.revokeObjectURL(data.url);
        setState({ data, isLoading: false });
      } catch (thrown) {
        if (!isAborted(thrown) && !abort.signal.aborted)
          setState((before) => ({ data: before.data, error: thrown as ApiError, isLoading: false }));
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, round]);
  // The image before is no longer shown once this one is.
  const url = state.data?.url;
  useEffect(() => () => void (url && URL.revokeObjectURL(url)), [url]);
  return { ...state, again: () => setRound((count) => count + 1) };
}
