/** Media queries, for what styles alone cannot do. */
import { useEffect, useState } from "preact/hooks";

export function useMedia(media: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(media).matches);
  useEffect(() => {
    const list = matchMedia(media);
    const onChange = () => setMatches(list.matches);
    list.addEventListener("change", onChange);
    return () => list.removeEventListener("change", onChange);
  }, [media]);
  return matches;
}
