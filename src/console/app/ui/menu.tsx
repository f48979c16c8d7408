/** A menu of actions behind a button: the browser's popover, with the arrow keys. */
import { type KeyboardEvent, useRef } from "react";
import { Icon } from "./icon.tsx";

export interface MenuItem {
  readonly label: string;
  readonly isDangerous?: boolean;
  readonly isDisabled?: boolean;
  run(): void;
}

interface MenuProps {
  /** Unique in the page. */
  readonly id: string;
  readonly label: string;
  readonly items: readonly MenuItem[];
  /** The path of its icon. Default: three points. */
  readonly icon?: string;
  /** The label stands beside the icon, where there is room. */
  readonly isWorded?: boolean;
}

export function Menu({
  id,
  label,
  items,
  isWorded = false,
  icon = "M3.2 8a.2.2 0 1 0-.4 0 .2.2 0 1 0 .4 0M8.2 8a.2.2 0 1 0-.4 0 .2.2 0 1 0 .4 0M13.2 8a.2.2 0 1 0-.4 0 .2.2 0 1 0 .4 0",
}: MenuProps) {
  const menu = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const move = (event: KeyboardEvent): void => {
    const buttons = [...(menu.current?.querySelectorAll("button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const next = {
      ArrowDown: (at + 1) % buttons.length,
      ArrowUp: (at - 1 + buttons.length) % buttons.length,
      Home: 0,
      End: buttons.length - 1,
    }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      buttons[next]?.focus();
    }
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        className={isWorded ? "icon-button worded" : "icon-button"}
        aria-label={label}
        aria-haspopup="menu"
        popoverTarget={id}
      >
        <Icon path={icon} />
        {isWorded && <span aria-hidden="true">{label}</span>}
      </button>
      <div
        ref={menu}
        id={id}
        role="menu"
        aria-label={label}
        tabIndex={-1}
        popover="auto"
        className="menu"
        onKeyDown={move}
        onToggle={({ newState }) => {
          if (newState === "open") {
            place(menu.current, button.current);
          }
        }}
      >
        {items.map((item, index) => (
          <button
            // biome-ignore lint/suspicious/noArrayIndexKey: with another label it is the same, and keeps the focus
            key={index}
            // The browser gives it the focus as it opens the menu: a key pressed at once is not lost.
            ref={index === 0 ? focusFirst : undefined}
            type="button"
            role="menuitem"
            // It keeps the focus: a menu of disabled items is read, and left by Escape, as any other.
            aria-disabled={item.isDisabled}
            className={item.isDangerous ? "dangerous" : ""}
            onClick={() => {
              if (item.isDisabled) {
                return;
              }
              menu.current?.hidePopover();
              button.current?.focus();
              item.run();
            }}
          >
            {item.label}
          </button>
        ))}
      </div>
    </>
  );
}

/**
 * Has the browser give the focus to this element when what it is in opens: React takes the
 * attribute for a call at the first rendering.
 */
function focusFirst(element: HTMLElement | null) {
  element?.setAttribute("autofocus", "");
  return () => element?.removeAttribute("autofocus");
}

/** Puts the menu below its button, or above it where there is no room. */
function place(menu: HTMLElement | null, button: HTMLElement | null): void {
  if (menu && button) {
    const { bottom, top, right } = button.getBoundingClientRect();
    const { offsetHeight, offsetWidth } = menu;
    const fits = bottom + offsetHeight < innerHeight;
    menu.style.top = `${fits ? bottom + 4 : Math.max(4, top - offsetHeight - 4)}px`;
    menu.style.left = `${Math.max(4, right - offsetWidth)}px`;
  }
}
