/** Which route an address names: pure. */

export interface Matched<Route> {
  route: Route;
  params: Record<string, string>;
}

/**
 * Finds the first route whose pattern fits. `:name` takes one segment, `:name?` one or none at the end. Segments that are
 * no valid percent-encoding fit nothing.
 */
export function match<Route extends { path: string }>(
  routes: Route[],
  path: string,
): Matched<Route> | undefined {
  const segments = path.split("/").filter(Boolean).map(decoded);
  if (segments.includes(undefined)) return undefined;
  for (const route of routes) {
    const params = fit(route.path.split("/").filter(Boolean), segments as string[]);
    if (params) return { route, params };
  }
  return undefined;
}

function fit(pattern: string[], segments: string[]): Record<string, string> | undefined {
  if (segments.length > pattern.length) return undefined;
  const params: Record<string, string> = {};
  for (const [i, part] of pattern.entries()) {
    const segment = segments[i];
    if (segment === undefined) {
      if (!part.endsWith("?")) return undefined;
    } else if (part.startsWith(":")) params[part.slice(1).replace("?", "")] = segment;
    else if (part !== segment) return undefined;
  }
  return params;
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
