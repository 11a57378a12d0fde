/** The code of a welcome or invitation link, which leaves the address bar and the history before anything else happens. */
import { path } from "../router";

export const welcomeCode = path.peek() === "/welcome" ? takeCode() : "";
export const joinCode = path.peek() === "/join" ? takeCode() : "";

function takeCode(): string {
  const text = location.hash.slice(1);
  if (text) history.replaceState(null, "", location.pathname);
  return text;
}
