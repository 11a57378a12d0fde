/** The examples of a call in the chosen language, which holds for the whole page. */
import type { Call } from "./call";
import { element } from "./element";
import { LANGUAGES, type Language, snippet } from "./snippets";

let language: Language = "curl";
const shown = new Set<() => void>();
let groups = 0;

export interface ExampleView {
  view: HTMLElement;
  show: (call: Call) => void;
}

export function exampleView(call: Call): ExampleView {
  let current = call;
  groups += 1;
  const group = `language-${groups}`;
  const radios = LANGUAGES.map((one) => {
    const radio = element("input", { type: "radio", name: group, value: one, class: "visually-hidden" });
    radio.addEventListener("change", () => {
      language = one;
      for (const update of shown) update();
    });
    return radio as HTMLInputElement;
  });
  const choices = radios.map((radio) => element("label", {}, radio, element("span", {}, radio.value)));
  const legend = element("legend", { class: "visually-hidden" }, "Language of the example");
  const code = element("code", {});
  const update = () => {
    for (const radio of radios) radio.checked = radio.value === language;
    code.textContent = snippet(language, current);
  };
  update();
  shown.add(update);
  const view = element(
    "div",
    { class: "example" },
    element("fieldset", { class: "languages" }, legend, ...choices),
    element(
      "div",
      { class: "command" },
      element("pre", { tabindex: "0" }, code),
      copyButton(() => code.textContent ?? ""),
    ),
  );
  return {
    view,
    show(next) {
      current = next;
      update();
    },
  };
}

function copyButton(text: () => string): HTMLElement {
  const copy = element("button", { class: "button copy", type: "button" }, "Copy");
  copy.addEventListener("click", async () => {
    await copyText(text());
    copy.textContent = "Copied";
    setTimeout(() => {
      copy.textContent = "Copy";
    }, 1500);
  });
  return copy;
}

/** Over plain HTTP browsers give no clipboard, but copy what is selected. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard && isSecureContext) return navigator.clipboard.writeText(text);
  const field = element("textarea", {
    class: "visually-hidden",
    "aria-hidden": "true",
  }) as HTMLTextAreaElement;
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
