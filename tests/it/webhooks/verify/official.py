"""Says of each delivery on standard input whether the official libraries believe it.

Input: JSON, a list of {secret, headers, body}, the body in base64. Output: a list of {stripe, standard}. Both libraries get
the raw bytes and their default tolerance.
"""

import base64
import json
import sys

import standardwebhooks
import stripe


def by_stripe(body, headers, secret):
    header = headers.get("service-signature", "")
    try:
        tolerance = stripe.Webhook.DEFAULT_TOLERANCE
        stripe.WebhookSignature.verify_header(body.decode(), header, secret, tolerance)
        verified = True
    except (stripe.SignatureVerificationError, UnicodeDecodeError):
        verified = False
    try:
        event = stripe.Webhook.construct_event(body, header, secret)
        constructed = event["id"] == headers["webhook-id"]
    except (stripe.SignatureVerificationError, UnicodeDecodeError):
        constructed = False
    assert verified == constructed, (verified, constructed)
    return verified


def by_standard_webhooks(body, headers, secret):
    try:
        event = standardwebhooks.Webhook(secret).verify(body, headers)
        return event["id"] == headers["webhook-id"]
    except (standardwebhooks.WebhookVerificationError, UnicodeDecodeError):
        return False


deliveries = json.load(sys.stdin)
answers = []
for delivery in deliveries:
    given = base64.b64decode(delivery["body"]), delivery["headers"], delivery["secret"]
    answers.append({"stripe": by_stripe(*given), "standard": by_standard_webhooks(*given)})
json.dump(answers, sys.stdout)
