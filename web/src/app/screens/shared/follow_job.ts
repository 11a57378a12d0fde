/** Jobs that a screen began, followed to their end. */
import { onChanges } from "../../api/changes";
import { api } from "../../api/client";
import type { Progress } from "../../api/progress";

interface JobState {
  status: string;
  progress: number;
  queuePlace: number | null;
}

/** Calls `moved` with how far the job is, and `ended` once with the job that has ended. */
export function followJob<Job extends JobState>(
  id: string,
  moved: (progress: Progress) => void,
  ended: (job: Job) => void,
) {
  let hasEnded = false;
  const ask = async () => {
    const job = await api.get<Job>(`/api/jobs/${id}`).catch(() => null);
    if (!job || hasEnded) return;
    if (job.status === "pending" || job.status === "processing")
      return moved({ percent: job.progress, queuePlace: job.queuePlace });
    hasEnded = true;
    end();
    ended(job);
  };
  const end = onChanges(
    ["job"],
    (message) => {
      if (message.event !== "progress") void ask();
      else moved({ percent: message.percent, queuePlace: message.queuePlace });
    },
    id,
  );
  void ask();
}
