/** The logo with the name, which leads home. */
import { Link } from "@tanstack/react-router";
import favicon from "../favicon.svg";

export function Brand() {
  return (
    <Link to="/" className="brand">
      <img src={favicon} alt="" width="20" height="20" />
      Tessera
    </Link>
  );
}
