/** Webhooks, deliveries and events, as the API answers them. */
export interface Webhook {
  id: string;
  url: string;
  description: string | null;
  eventTypes: string[];
  isActive: boolean;
  status: "active" | "suspended" | "paused";
  statusReason: string | null;
  statusSince?: string;
  nextProbeAt?: string | null;
  /** Deliveries that wait; 10 000 means that many or more. */
  waiting?: number;
  consecutiveFailures: number;
  secretPrefix: string;
  lastSuccessAt: string | null;
  lastFailureAt: string | null;
}

export interface Delivery {
  id: string;
  endpointId: string;
  endpointUrl: string;
  eventId: string;
  eventType: string;
  status: "pending" | "delivering" | "retrying" | "delivered" | "failed";
  attemptCount: number;
  httpStatus: number | null;
  error: string | null;
  responseBodyPreview: string | null;
  createdAt: string;
  nextAttemptAt: string | null;
  deliveredAt: string | null;
}

export interface Attempt {
  number: number;
  status: string;
  httpStatus: number | null;
  error: string | null;
  startedAt: string;
  isProbe: boolean;
}

export interface SentRequest {
  method: string;
  url: string;
  headers: { name: string; value: string }[];
  body: string;
  sentAt: string | null;
  isAsSent: boolean;
}

export interface DeliveryDetail {
  delivery: Delivery;
  attempts: Attempt[];
  request: SentRequest;
}

export interface EventType {
  name: string;
  summary: string;
  isOptIn: boolean;
}

export interface FeedEvent {
  id: string;
  type: string;
  /** Unix seconds. */
  created: number;
  data: unknown;
}
