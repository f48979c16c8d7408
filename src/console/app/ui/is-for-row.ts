/**
 * Whether a click in a row that opens is for the row: not for something in it, nor for a dialog or a
 * menu that it has opened, nor the end of a selection, whose text is to be copied.
 */
export const isForRow = ({ target }: { readonly target: EventTarget }): boolean =>
  !(target instanceof Element && target.closest("a, button, select, dialog, [popover]") !== null) &&
  getSelection()?.isCollapsed !== false;
