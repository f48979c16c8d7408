// @ts-check
/** The token of this session, and the dialog that asks for it. */
import { byId } from "./dom.js";

const KEY = "tessera.token";

/** The token of this session, if there is one. */
export function currentToken() {
  return sessionStorage.getItem(KEY);
}

/** @type {Promise<boolean> | undefined} */
let asking;

/**
 * Shows the token dialog. Several calls that need a token share one dialog.
 * @param {string} [message] why it is asked for
 * @returns {Promise<boolean>} true when there is a new token
 */
export function askForToken(message) {
  asking ??= showDialog(message).finally(() => {
    asking = undefined;
  });
  return asking;
}

/** @param {string} [message] */
function showDialog(message) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("token-dialog"));
  const input = /** @type {HTMLInputElement} */ (byId("token-input"));
  if (message) {
    byId("token-message").textContent = message;
  }
  input.value = "";
  byId("token-remove").hidden = !currentToken();
  dialog.returnValue = "cancel";
  dialog.showModal();
  input.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(keep(dialog.returnValue, input.value.trim())), {
      once: true,
    });
  });
}

/**
 * @param {string} choice
 * @param {string} token
 */
function keep(choice, token) {
  if (choice === "remove") {
    sessionStorage.removeItem(KEY);
  }
  if (choice !== "save" || !token) {
    return false;
  }
  sessionStorage.setItem(KEY, token);
  return true;
}
