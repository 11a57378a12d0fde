/** The workflows to choose from, and to find by their names: the service has no search for them. */
import { api } from "./client";
import { readPages } from "./pages";

export interface ListedWorkflow {
  id: string;
  name: string;
  isActive: boolean;
}

const PAGE = 100;
/** No more than the newest 1 000 are known. */
const MOST_PAGES = 10;

export async function allWorkflows(signal?: AbortSignal): Promise<ListedWorkflow[]> {
  const list = await readPages(async (cursor) => {
    const query = { limit: PAGE, cursor };
    const page = await api.get<{ workflows: ListedWorkflow[]; nextCursor?: string | null }>(
      "/api/workflows",
      { query, ...(signal ? { signal } : {}) },
    );
    return { items: page.workflows, next: page.nextCursor };
  }, MOST_PAGES);
  return list.items;
}
