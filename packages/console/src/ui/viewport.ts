/** How wide the window is: columns come and go with it. */
import { useEffect, useState } from "preact/hooks";

/** The inner width in px, in a component that is drawn again when it changes. */
export function useViewportWidth(): number {
  const [width, setWidth] = useState(innerWidth);
  useEffect(() => {
    const update = (): void => setWidth(innerWidth);
    addEventListener("resize", update);
    return () => removeEventListener("resize", update);
  }, []);
  return width;
}
