/** The search box above a list: what is typed is the query's `q`, which a reload and a sent link keep. */
import { useEffect, useRef, useState } from "preact/hooks";
import { setQuery } from "../router";
import { TextField } from "./form";

/** Between the last key and the search. */
const TYPING_MS = 250;

/** Between the last key in a dialog and the search. */
const TYPING_IN_DIALOG_MS = 200;

/** The text of a dialog's own search box, trimmed, once no key has come for a moment. */
export function useSettledText(typed: string): string {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(typed.trim()), TYPING_IN_DIALOG_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return settled;
}

interface SearchFieldProps {
  label: string;
  /** The present `q`. */
  value: string;
  maxLength: number;
  /** What is searched: what was typed for another place is not searched for here. */
  place?: string | null;
  /** For shortcuts that go to it. */
  id?: string;
}

export function SearchField({ label, value, maxLength, place, id }: SearchFieldProps) {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    // The space after a word is not in the query, and stays while the next word is typed.
    if (text.trim() !== value) setText(value);
  }, [value, place]);
  useEffect(() => () => clearTimeout(timer.current), [place]);
  const onInput = (typed: string) => {
    setText(typed);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ q: typed.trim() || undefined }), TYPING_MS);
  };
  return (
    <TextField
      label={label}
      hiddenLabel
      type="search"
      name="q"
      id={id}
      placeholder={label}
      value={text}
      maxLength={maxLength}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}
