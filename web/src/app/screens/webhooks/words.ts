/** The texts of the webhooks' screens. */
import { capitalized } from "../../parts/format";

export const words = {
  title: "Webhooks",
  tabs: { label: "Parts of webhooks", endpoints: "Endpoints", deliveries: "Deliveries", events: "Events" },
  cancel: "Cancel",
  save: "Save",
  actions: "Actions",
  more: "Show more",
  endpoints: {
    new: "New endpoint",
    emptyTitle: "No endpoints",
    empty:
      "A webhook posts each event, signed, to an address of yours: when a file is stored, a stream goes live, a job ends. Nothing is lost while the receiver is down.",
    guide: "Webhooks in five minutes",
    waiting: (count: number) =>
      count >= 10_000
        ? "10,000 or more deliveries wait"
        : count === 1
          ? "1 delivery waits"
          : `${count} deliveries wait`,
    all: "all events",
    types: (count: number) => (count === 1 ? "1 event type" : `${count} event types`),
    success: "last success",
    failure: "last failure",
    none: "nothing sent yet",
    test: "Send a test event",
    tested: "The test event is on its way.",
    follow: "Follow it",
    edit: "Change",
    rotate: "New secret",
    pause: "Pause",
    resume: "Resume",
    recover: "Send failed ones again",
    deliveries: "Deliveries",
    remove: "Delete",
    suspendedTitle: (url: string) => `${url} is suspended`,
    reason: (reason: string) => `${capitalized(reason)}. None is lost.`,
    suspended: "suspended",
    nextTry: "next try",
    probe: "Try now",
    probed: "One delivery is being tried.",
  },
  edit: {
    newTitle: "New endpoint",
    title: "Change the endpoint",
    url: "Address",
    urlHint:
      "http:// or https://. An address in a private network must be allowed by outbound.allow in the settings.",
    description: "Description",
    events: "Events",
    all: "All events",
    allHint:
      "Those of later versions too. Events that are marked “by name only” are sent when they are chosen below.",
    optIn: "by name only",
    create: "Make the endpoint",
    none: "Choose at least one event.",
  },
  secret: {
    title: "Signing secret",
    note: "This is the only time that the secret is shown. The receiver checks every request's signature with it.",
    rotateTitle: "Make a new signing secret?",
    rotateBody:
      "For some time requests are signed with both, so that the receiver can change over without a gap.",
    rotate: "Make a new secret",
    label: "Secret",
  },
  remove: {
    title: "Delete this endpoint?",
    body: "Nothing more is sent to it, and its deliveries that wait are given up.",
    done: "The endpoint is deleted.",
  },
  recover: {
    title: "Send failed deliveries again",
    lead: "Every delivery to this endpoint that failed since then is sent once more.",
    since: "Failed in the last",
    spans: { "3600": "hour", "86400": "day", "604800": "week", "2592000": "30 days" } as Record<
      string,
      string
    >,
    verb: "Send again",
    done: (count: number) =>
      count === 1 ? "1 delivery is sent again." : `${count} deliveries are sent again.`,
  },
  deliveries: {
    endpoint: "Endpoint",
    status: "Status",
    answered: "Answered",
    type: "Event",
    since: "Since",
    any: "any",
    allEndpoints: "All endpoints",
    allTypes: "All events",
    statuses: {
      pending: "waiting",
      delivering: "being sent",
      retrying: "tried again later",
      delivered: "delivered",
      failed: "failed",
    } as Record<string, string>,
    answers: { "2xx": "2xx", "3xx": "3xx", "4xx": "4xx", "5xx": "5xx" } as Record<string, string>,
    spans: { "3600": "last hour", "86400": "last day", "604800": "last week" } as Record<string, string>,
    time: "Time",
    tries: "Tries",
    http: "HTTP",
    emptyTitle: "No deliveries",
    empty: "What is sent to your endpoints appears here, with every attempt and its answer.",
    none: "No delivery fits.",
    open: "Open",
  },
  detail: {
    title: "Delivery",
    again: "Send again",
    sent: "It is sent again.",
    event: "Event",
    attempts: "Attempts",
    probe: "probe",
    next: "Next attempt",
    request: "Request",
    answer: "Answer",
    asSent: "As it was sent",
    notSent: "As it will be sent",
    changed: "As it would be sent now: the address or the secret has changed since.",
    noAnswer: "No answer has come.",
    emptyAnswer: "The answer has no body.",
    verify: "Verify in",
    verifyLead:
      "With the secret in WEBHOOK_SECRET it prints “valid” for this delivery, whose bytes are inside.",
    curl: "Send it by curl",
  },
  events: {
    emptyTitle: "Nothing has happened yet",
    empty: "Every change that webhooks report is listed here too, also without an endpoint.",
    data: "Data of the event",
    deliveries: "Deliveries",
  },
};
