/** Whether a finger's way over the picture means another file. Pure but for {@link onSwipe}. */

export type Swipe = "previous" | "next" | "close";

/** So far a finger goes when it means it, and so much more along than across. */
const REACH_PX = 48;
const STRAIGHTNESS = 1.6;

/** @param dx to the right, @param dy downwards */
export function swipeOf(dx: number, dy: number): Swipe | null {
  const [along, across] = [Math.abs(dx), Math.abs(dy)];
  if (along >= REACH_PX && along > across * STRAIGHTNESS) return dx > 0 ? "previous" : "next";
  if (dy >= 2 * REACH_PX && across > along * STRAIGHTNESS) return "close";
  return null;
}

/** Touch alone; a mouse has the buttons. A picture that is zoomed in is being looked over, not left. */
export function onSwipe(surface: HTMLElement, take: (swipe: Swipe) => void): void {
  let start: Touch | null = null;
  surface.addEventListener(
    "touchstart",
    (event) => {
      const isZoomed = (visualViewport?.scale ?? 1) > 1.05;
      const single = event.touches.length === 1 && !isZoomed && !isControl(event);
      start = single ? (event.touches[0] ?? null) : null;
    },
    { passive: true },
  );
  surface.addEventListener("touchcancel", () => {
    start = null;
  });
  surface.addEventListener("touchend", (event) => {
    const end = event.changedTouches[0];
    const swipe = start && end ? swipeOf(end.clientX - start.clientX, end.clientY - start.clientY) : null;
    start = null;
    if (swipe) take(swipe);
  });
}

/** The lowest part of a player holds its own controls, a scrubber among them. */
function isControl(event: TouchEvent): boolean {
  const { target } = event;
  if (!(target instanceof HTMLMediaElement)) return false;
  const { bottom } = target.getBoundingClientRect();
  return (event.touches[0]?.clientY ?? 0) > bottom - 96;
}
