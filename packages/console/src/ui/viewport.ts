/** The width of the window, which determines the visible columns. */
import { useEffect, useState } from "preact/hooks";

/** The inner width in px, in a component that rerenders when it changes. */
export function useViewportWidth(): number {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const update = (): void => setWidth(innerWidth);
    addEventListener("resize", update);
    return () => removeEventListener("resize", update);
  }, []);
  return width;
}
