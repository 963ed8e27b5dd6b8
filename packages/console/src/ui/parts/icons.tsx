/** State icons. Each state has its own shape, so that color is never the only difference. */
import type { JSX } from "preact";

/** The shapes. */
export type StateShape = "held" | "free" | "paused" | "waiting" | "trouble" | "good";

/** The props of an icon. */
export interface StateMarkProps {
  readonly shape: StateShape;
  /** The label for screen readers and the tooltip; absent if the text is next to the icon. */
  readonly word?: string;
}

/** An icon, with a label unless the text is next to it. */
export function StateMark({ shape, word }: StateMarkProps): JSX.Element {
  return (
    <span class={`mark ${shape}`} title={word}>
      <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
        {drawn(shape)}
      </svg>
      {word !== undefined && <span class="hidden">{word} </span>}
    </span>
  );
}

function drawn(shape: StateShape): JSX.Element {
  switch (shape) {
    case "held":
      return <circle cx="6" cy="6" r="4.5" fill="currentColor" />;
    case "free":
      return <circle cx="6" cy="6" r="3.75" fill="none" stroke="currentColor" stroke-width="1.5" />;
    case "paused":
      return <path d="M2.5 1.5h2.5v9h-2.5zM7 1.5h2.5v9h-2.5z" fill="currentColor" />;
    case "waiting":
      return (
        <path d="M6 1.5a4.5 4.5 0 1 0 0 9z M6 2.25a3.75 3.75 0 0 1 0 7.5" fill="currentColor" stroke="currentColor" />
      );
    case "trouble":
      return <path d="M6 1 11.5 11H.5z" fill="currentColor" />;
    case "good":
      return <path d="M2 6.5 5 9.5 10.5 3" fill="none" stroke="currentColor" stroke-width="2" />;
  }
}
