/** Chooses every file of what is shown. */
import { toast } from "../../shell/toasts";
import { MOST_CHOSEN, type Selection, withAll } from "./selection";
import { type Beginning, filesBetween } from "./view";
import { words } from "./words";

export async function chooseAllOf(beginning: Beginning): Promise<Selection> {
  const all = await filesBetween(beginning, 0, beginning.folders.length + beginning.total - 1, MOST_CHOSEN);
  if (beginning.total > all.length) toast(words.notAll(all.length, beginning.total));
  return withAll(all);
}
