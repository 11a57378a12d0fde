/** Recognizes swipes over the viewer's content. Pure but for {@link onSwipe}. */

export type Swipe = "previous" | "next" | "close";

/** Shortest swipe, and the least ratio of its main axis to the other. */
const REACH_PX = 48;
const STRAIGHTNESS = 1.6;

/** @param dx to the right, @param dy downwards */
export function swipeOf(dx: number, dy: number): Swipe | null {
  const [along, across] = [Math.abs(dx), Math.abs(dy)];
  if (along >= REACH_PX && along > across * STRAIGHTNESS) return dx > 0 ? "previous" : "next";
  if (dy >= 2 * REACH_PX && across > along * STRAIGHTNESS) return "close";
  return null;
}

/** Listens to touch only; a mouse has the buttons. While the page is zoomed in, a moving finger pans and is no swipe. */
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

/** True for the lowest 96 px of a player, which hold its own controls, the seek bar among them. */
function isControl(event: TouchEvent): boolean {
  const { target } = event;
  if (!(target instanceof HTMLMediaElement)) return false;
  const { bottom } = target.getBoundingClientRect();
  return (event.touches[0]?.clientY ?? 0) > bottom - 96;
}
