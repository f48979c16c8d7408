/** The profile menu: tokens, account, theme, sign-out. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { signOut, usePerson } from "../api/session.ts";
import { Icon } from "../ui/icon.tsx";
import { applyTheme, chosenTheme, type Theme } from "./theme.ts";

const MENU = "person-menu";
const THEMES: readonly Theme[] = ["system", "light", "dark"];

export function PersonMenu() {
  const { person, organization } = usePerson();
  const [theme, setTheme] = useState(chosenTheme);
  return (
    <div className="person">
      <button type="button" className="person-button" popoverTarget={MENU}>
        <span className="avatar" aria-hidden="true">
          {(person.email ?? "?").charAt(0).toUpperCase()}
        </span>
        <span className="person-email">{person.email}</span>
        <Icon path="M4 10l4-4 4 4" />
      </button>
      <div id={MENU} popover="auto" className="menu person-menu">
        <Link
          to="/o/$organization/tokens"
          params={{ organization: organization?.name ?? "" }}
          onClick={() => document.getElementById(MENU)?.hidePopover()}
        >
          API Tokens
        </Link>
        <Link to="/account" onClick={() => document.getElementById(MENU)?.hidePopover()}>
          Account
        </Link>
        <a href="/docs/">Documentation</a>
        <Link to="/reference" onClick={() => document.getElementById(MENU)?.hidePopover()}>
          API reference
        </Link>
        <fieldset className="theme">
          <legend>Theme</legend>
          {THEMES.map((one) => (
            <label key={one}>
              <input
                type="radio"
                name="theme"
                checked={theme === one}
                onChange={() => {
                  applyTheme(one);
                  setTheme(one);
                }}
              />
              {one}
            </label>
          ))}
        </fieldset>
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </div>
    </div>
  );
}
