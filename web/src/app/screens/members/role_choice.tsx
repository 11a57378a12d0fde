/** One of the three roles, each with what it may do. */
import type { Role } from "../../api/session";
import { words } from "./words";

const ROLES: Role[] = ["viewer", "member", "admin"];

export function RoleChoice({ value }: { value: Role }) {
  return (
    <fieldset class="role-choice">
      <legend>{words.role}</legend>
      {ROLES.map((role) => (
        <label key={role}>
          <input type="radio" name="role" value={role} defaultChecked={role === value} />
          <span>{words.roles[role]}</span>
          <span class="soft small">{words.rights[role]}</span>
        </label>
      ))}
    </fieldset>
  );
}
