/** Whether the Overview begins with the first steps: until they are done or hidden, and again once the help asks for them. */
import { signal } from "@preact/signals";
import { kept } from "./kept";

type Choice = "hidden" | "asked" | "";
const CHOICES: Record<string, Choice> = { "1": "hidden", "0": "asked" };

/** Empty: as they are done. */
export const firstSteps = signal<Choice>(CHOICES[kept("first_steps.hidden") ?? ""] ?? "");

export function chooseFirstSteps(choice: "hidden" | "asked") {
  kept("first_steps.hidden", choice === "hidden" ? "1" : "0");
  firstSteps.value = choice;
}
