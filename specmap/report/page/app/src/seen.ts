// Work that waits until somebody looks, or until the browser has nothing else to do.
import { useEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";

const PATIENCE_MS = 1500;

/** False until the element is near the window, or the page has long been idle. */
export function useSeen(element: RefObject<Element | null>): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (seen || !element.current) return undefined;
    const watch = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && setSeen(true), { rootMargin: "200px" });
    watch.observe(element.current);
    const wait = setTimeout(() => ("requestIdleCallback" in globalThis ? requestIdleCallback(() => setSeen(true)) : setSeen(true)), PATIENCE_MS);
    return () => {
      watch.disconnect();
      clearTimeout(wait);
    };
  }, [seen, element]);
  return seen;
}
