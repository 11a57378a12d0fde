/**
 * Holds the screens' types to the API's: a field that the OpenAPI document does not have (any longer) does not compile. The
 * error names the field: `Type '"counts.total"' does not satisfy the constraint 'never'`.
 */
import type { components } from "./api/schema";
import type { Session } from "./api/session";
import type { Quotas } from "./parts/states";
import type { JobDetail } from "./screens/activity/job";
import type * as audit from "./screens/audit/types";
import type * as convert from "./screens/convert/types";
import type * as files from "./screens/files/types";
import type * as images from "./screens/images/types";
import type * as live from "./screens/live_detail/types";
import type * as members from "./screens/members/types";
import type * as overview from "./screens/overview/types";
import type * as keys from "./screens/settings_api/types";
import type * as usage from "./screens/settings_usage/types";
import type * as activity from "./screens/shared/activity/types";
import type * as shared from "./screens/shared/live_types";
import type * as streams from "./screens/shared/stream_types";
import type * as workflows from "./screens/shared/workflow_types";
import type * as system from "./screens/system/types";
import type * as webhooks from "./screens/webhooks/types";

type Schemas = components["schemas"];
type Plain = string | number | boolean | null | undefined;

/** The paths of fields that the screen's type has and the API's has not. */
type Missing<Api, Own> = Own extends Plain
  ? never
  : Own extends readonly (infer Item)[]
    ? NonNullable<Api> extends readonly (infer ApiItem)[]
      ? Missing<ApiItem, Item>
      : "[]"
    : {
        [Name in keyof Own & string]: Name extends keyof NonNullable<Api>
          ? Below<Name, Missing<NonNullable<Api>[Name], Own[Name]>>
          : Name;
      }[keyof Own & string];

type Below<Name extends string, Path> = Path extends string ? `${Name}.${Path}` : never;
type None<Path extends never> = Path;

export type Checked = [
  None<Missing<Schemas["SessionAnswer"], Session>>,
  None<Missing<Schemas["LiveInputList"], shared.LiveInputs>>,
  None<Missing<Schemas["LiveInputWithKey"], shared.LiveInputWithKey>>,
  None<Missing<Schemas["LiveInputHealth"], Omit<overview.Health, "id" | "name">>>,
  None<Missing<Schemas["WebhookRecord"], overview.Webhook>>,
  None<Missing<Schemas["Usage"], overview.Usage>>,
  None<Missing<Schemas["LiveInputHealth"], live.Health>>,
  None<Missing<Schemas["HealthHistory"], live.HealthHistory>>,
  None<Missing<Schemas["PublisherConnectionRecord"], live.Connection>>,
  None<Missing<Schemas["LiveOutputRecord"], live.Output>>,
  None<Missing<Schemas["RecordingRecord"], live.Recording>>,
  None<Missing<Schemas["FileRecord"], files.FileRecord>>,
  None<Missing<Schemas["FileDetail"], Omit<files.FileDetail, "media">>>,
  None<Missing<Schemas["FileList"], files.FileList>>,
  None<Missing<Schemas["FolderRecord"], files.FolderRecord>>,
  None<Missing<Schemas["BulkAnswer"], files.BulkAnswer>>,
  None<Missing<Schemas["SelectionAnswer"], files.ZipAnswer>>,
  None<Missing<Schemas["CdnParameter"], images.CdnParameter>>,
  None<Missing<Schemas["Capabilities"], images.Catalogue>>,
  None<Missing<Schemas["DeliveryKeyRecord"], images.DeliveryKey>>,
  None<Missing<Schemas["PresetRecord"], images.Preset>>,
  None<Missing<Schemas["FileDetail"], Omit<images.StoredFile, "media">>>,
  None<Missing<Schemas["StatsAnswer"], images.Statistics>>,
  None<Missing<Schemas["Capabilities"], convert.Catalogue>>,
  None<Missing<Schemas["JobRecord"], Omit<convert.Job, "results">>>,
  None<Missing<Schemas["ResultFile"], Omit<convert.ResultFile, "facts">>>,
  None<Missing<Schemas["StreamList"], streams.StreamList>>,
  None<Missing<Schemas["KeyRecord"], keys.ApiKey>>,
  None<Missing<Schemas["DeliveryKeyRecord"], keys.DeliveryKey>>,
  None<Missing<Schemas["PlaybackKeyRecord"], keys.PlaybackKey>>,
  None<Missing<Schemas["AuditEntry"], audit.AuditEntry>>,
  None<Missing<Schemas["UserRecord"], members.User>>,
  None<Missing<Schemas["InvitationRecord"], members.Invitation>>,
  None<Missing<Schemas["Usage"], usage.Usage>>,
  None<Missing<Schemas["Usage"], Quotas>>,
  None<Missing<Schemas["UsageHistory"], usage.History>>,
  None<Missing<Schemas["JobRecord"], JobDetail>>,
  None<Missing<Schemas["RunRecord"], activity.Run>>,
  None<Missing<Schemas["StreamRecord"], activity.Stream>>,
  None<Missing<Schemas["RecordingRecord"], activity.Recording>>,
  None<Missing<Schemas["FileRecord"], activity.StoredFile>>,
  None<Missing<Schemas["LiveInputRecord"], activity.Input>>,
  None<Missing<Schemas["UploadList"], activity.UploadList>>,
  None<Missing<Schemas["WebhookRecord"], webhooks.Webhook>>,
  None<Missing<Schemas["DeliveryRecord"], webhooks.Delivery>>,
  None<Missing<Schemas["AttemptRecord"], webhooks.Attempt>>,
  None<Missing<Schemas["SentRequest"], webhooks.SentRequest>>,
  None<Missing<Schemas["EventTypeRecord"], webhooks.EventType>>,
  None<Missing<Schemas["Event"], Omit<webhooks.FeedEvent, "data">>>,
  None<Missing<Schemas["WorkflowRecord"], Omit<workflows.Workflow, "definition">>>,
  None<Missing<Schemas["VersionRecord"], workflows.WorkflowVersion>>,
  None<Missing<Schemas["RunRecord"], Omit<workflows.Run, "log" | "outputs">>>,
  None<Missing<Schemas["LogEntry"], Omit<workflows.LogEntry, "facts">>>,
  None<Missing<Schemas["OutputRecord"], workflows.RunOutput>>,
  None<Missing<Schemas["System"], system.System>>,
  None<Missing<Schemas["LogLines"], system.LogLines>>,
  None<Missing<Schemas["DoctorReport"], system.Report>>,
  None<Missing<Schemas["SettingList"], system.Settings>>,
  None<Missing<Schemas["AccountList"], system.Accounts>>,
  None<Missing<Schemas["AccountMade"], system.AccountMade>>,
];
