/** `GET /api/system`, kept true: after changes, and every few seconds for what moves without one. */
import { useEffect } from "preact/hooks";
import { api } from "../../api/client";
import { type Resource, useResource } from "../../api/resource";
import type { System } from "./types";

const EVERY_MS = 5_000;

export function useSystem(): Resource<System> {
  const system = useResource((signal) => api.get<System>("/api/system", { signal }), [], {
    on: ["system", "service"],
    keep: true,
  });
  const { reload } = system;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || reload(), EVERY_MS);
    return () => clearInterval(timer);
  }, [reload]);
  return system;
}
