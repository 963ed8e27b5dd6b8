/** A dialogue: the browser's own, which keeps the focus inside and closes with Esc. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

/** What it shows. */
export interface DialogProps {
  readonly title: string;
  /** Esc, the backdrop and the buttons of the content lead here. */
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** One that changes something that others rely on. */
  readonly isGrave?: boolean;
}

/** Open as long as it is drawn; what had the focus before gets it back. */
export function Dialog({ title, onClose, children, isGrave = false }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Esc does what the click does, and comes as onCancel
    <dialog
      ref={dialog}
      class={isGrave ? "grave" : undefined}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose(); // the backdrop: everything else is inside the box below
      }}
    >
      <div class="dialog-box">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
