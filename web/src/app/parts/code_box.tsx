/** Text in the font of code, as it is: bytes of a request, JSON. */

/** A box that breaks long lines and scrolls beyond its height; the keyboard reaches it, so that it can be scrolled. */
export function CodeBox({ label, children }: { label: string; children: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <pre class="code-box" role="group" aria-label={label} tabIndex={0}>
      {children}
    </pre>
  );
}
