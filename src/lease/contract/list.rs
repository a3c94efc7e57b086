//! The list of the laws: one line each, from which the tests of a store are written too.

#[cfg(test)]
use super::flawed::{Field::*, Flaw::*};
use super::{
    Bond, Group, Law, age, claims, content, ends, keys, lost, maintain, marks, resets, swaps, undone, zombies,
};
#[cfg(test)]
use crate::lease::planted::Fault as Planted;

/// Makes the list and, from the same lines, the macro that writes a test for each of them.
macro_rules! laws {
    ($dollar:tt $($group:ident {
        $($file:ident :: $name:ident, $says:literal, broken by [$($flaw:expr),+] $(, $waivable:ident)?;)+
    })+) => {
        /// All laws, in the order in which a store author should mend them.
        pub const LAWS: &[Law] = &[$($(Law {
            name: stringify!($name),
            says: $says,
            group: Group::$group,
            bond: bond!($($waivable)?),
            run: |trial| Box::pin($file::$name(trial)),
            #[cfg(test)]
            flaws: &[$($flaw),+],
        },)+)+];

        /// Writes one `#[test]` for each law of [`LAWS`](crate::contract::LAWS), on the
        /// [`Subject`](crate::contract::Subject) that the expression makes. The expression is
        /// evaluated once for each test, on a runtime of its own, and may `.await`.
        #[macro_export]
        macro_rules! contract {
            ($dollar subject:expr) => {
                $($(
                    #[test]
                    fn $name() -> ::std::result::Result<(), $crate::contract::Breach> {
                        $crate::contract::check(stringify!($name), async { $dollar subject })
                    }
                )+)+
            };
        }
    };
}

/// A law binds every store unless its line says otherwise.
macro_rules! bond {
    () => {
        Bond::Binding
    };
    (waivable) => {
        Bond::Waivable
    };
}

laws! { $
Port {
    swaps::a_read_sees_the_last_write,
        "a read returns what the last write wrote",
        broken by [StaleReads];
    swaps::a_create_writes_only_where_nothing_stands,
        "a create writes only where nothing stands",
        broken by [CreateOverwrites];
    swaps::an_update_writes_only_over_the_version_it_names,
        "an update writes only over the version that it names",
        broken by [IgnoresVersion];
    swaps::an_update_of_a_deleted_record_is_lost,
        "an update of a deleted record is lost and creates nothing",
        broken by [IgnoresVersion];
    swaps::a_lost_swap_writes_nothing,
        "a lost swap writes nothing",
        broken by [WritesWhenLost];
    swaps::a_lost_swap_is_never_called_written,
        "a lost swap is never answered as written",
        broken by [LostIsWritten];
    swaps::what_a_lost_swap_says_is_true,
        "what a lost swap says of the standing record is true",
        broken by [LiesAboutStanding, KeepsSilent];
    swaps::the_version_of_a_write_is_the_one_that_is_read,
        "the version that a write returns is the one that a read returns",
        broken by [OtherVersion];
    swaps::a_version_names_one_content,
        "every write has a new version, also one that changes only the token",
        broken by [VersionStuck];
    swaps::a_version_does_not_come_back_after_deletion,
        "after a deletion a version never names another record",
        broken by [VersionRepeats];
    swaps::of_many_creates_one_wins,
        "of many creates at once exactly one wins",
        broken by [ChecksThenActs];
    swaps::of_many_updates_one_wins,
        "of many updates of one version at once exactly one wins",
        broken by [ChecksThenActs];
    content::every_field_comes_back,
        "every field of a record comes back as it was written, at its extremes too",
        broken by [Loses(Receipt), Loses(Digest), Loses(Holder), Loses(Aged), Loses(Expires)];
    content::unknown_fields_come_back,
        "fields of a newer minor format come back",
        broken by [Loses(Unknown)];
    content::data_at_the_limit_comes_back,
        "data comes back byte by byte, up to its limit",
        broken by [Loses(Data)], waivable;
    content::data_over_the_limit_is_refused,
        "data over its limit is refused, and nothing is written",
        broken by [CutsData];
    content::a_newer_major_is_neither_absent_nor_overwritten,
        "a record of a newer major format is an error, never absent and never overwritten",
        broken by [NewerIsAbsent];
    age::age_starts_near_zero,
        "a record that was just written is young",
        broken by [AgesTooFast];
    age::age_grows,
        "age grows",
        broken by [NeverAges];
    age::reading_does_not_make_it_younger,
        "reading a record does not make it younger",
        broken by [YoungerByReading];
    age::every_write_starts_age_anew,
        "age is counted from the last write",
        broken by [AgeOfFirstWrite];
    age::age_is_without_aged,
        "age counts from the write alone, whatever `aged` says",
        broken by [AddsAged];
    keys::keys_that_differ_stay_apart,
        "keys that differ in one byte, in case or in form are different keys",
        broken by [CutsKeys, FoldsCase, TrimsKeys];
    keys::any_text_can_be_a_key,
        "every text that is not blank can be a key",
        broken by [RefusesOddKeys];
}
Lease {
    claims::the_first_claim_of_a_key_wins,
        "absent, claim: claimed, won",
        broken by [Loses(Holder)];
    claims::a_live_claim_excludes_others,
        "claimed, claim within the lease: held, unchanged",
        broken by [AgesTooFast, Loses(Lease)];
    claims::a_crashed_holder_heals_when_its_lease_lapses,
        "claimed, claim after the lease: won, with a higher fence",
        broken by [NeverAges];
    claims::a_released_key_is_claimed_at_once,
        "released, claim: won, with a higher fence",
        broken by [KeepsReleased];
    claims::of_many_claims_one_wins,
        "of many claims at once exactly one wins",
        broken by [ChecksThenActs];
    claims::of_many_takeovers_one_wins,
        "of many claims of a lapsed key at once exactly one wins",
        broken by [ChecksThenActs];
    claims::a_mutex_cycles_and_is_never_done,
        "mutex: claimed and released again and again, never done",
        broken by [KeepsReleased];
    claims::a_live_key_of_another_verb_is_misuse,
        "live, claim by mutex against lock and at_most_once or the reverse: misuse",
        broken by [Loses(Verb)];
    claims::the_lease_and_ttl_that_count_are_the_records,
        "the lease and the ttl that count are those in the record",
        broken by [Loses(Lease), Loses(Ttl)];
    claims::a_fence_rises_even_by_a_clock_that_is_behind,
        "a fence rises with every claim and release, also by a clock that is behind",
        broken by [Loses(Fence)];
    claims::what_the_lease_does_not_know_survives_it,
        "data and unknown fields survive claim, renew, complete and release",
        broken by [Loses(Data), Loses(Unknown)];
    ends::a_completed_key_skips_duplicates_with_its_receipt,
        "done, claim within the ttl: done, with the receipt",
        broken by [AgesTooFast, Loses(Receipt)];
    ends::a_rejected_key_skips_duplicates_as_rejected,
        "claimed, reject: done, and duplicates are told that it was rejected",
        broken by [AgesTooFast, Loses(Receipt)];
    ends::a_done_key_is_free_after_its_ttl,
        "done, claim after the ttl: won, with a higher fence and a fresh history",
        broken by [NeverAges];
    ends::a_late_completion_is_recorded,
        "claimed, complete after the lapse, nobody took it over: recorded",
        broken by [RefusesLapsed, Plants(Planted::LeaseGuardOnComplete)];
    ends::completing_twice_does_not_slide_the_window,
        "done, complete by its holder: recorded, and unchanged",
        broken by [IgnoresVersion];
    ends::a_done_key_is_neither_renewed_nor_released,
        "done, renew or release by its holder: already done, unchanged",
        broken by [IgnoresVersion];
    ends::a_release_never_deletes,
        "claimed, release: released, with a higher fence, never deleted",
        broken by [ForgetsOnRelease];
    ends::a_renewal_starts_the_lease_anew,
        "claimed, renew: age zero; fence, history and runs stay",
        broken by [AgeOfFirstWrite];
    ends::another_payload_under_a_done_key_is_told_apart,
        "done, claim with another payload: done, as a conflict",
        broken by [Loses(Digest)];
    ends::every_write_counts_retention_anew,
        "every write sets when garbage collection may delete: lease, ttl and a day from now",
        broken by [Loses(Expires)];
    zombies::a_zombie_cannot_complete,
        "claimed by another, complete: fenced out, unchanged",
        broken by [IgnoresVersion];
    zombies::a_zombie_cannot_reject,
        "claimed by another, reject: fenced out, unchanged",
        broken by [IgnoresVersion];
    zombies::a_zombie_cannot_renew,
        "claimed by another, renew: fenced out, unchanged",
        broken by [IgnoresVersion];
    zombies::a_zombie_cannot_release,
        "claimed by another, release: fenced out, unchanged",
        broken by [IgnoresVersion];
    zombies::a_zombie_cannot_touch_what_its_successor_completed,
        "done by another, complete, reject, renew and release: fenced out, unchanged",
        broken by [IgnoresVersion];
    zombies::a_released_claim_is_dead,
        "released, complete, reject and renew: fenced out; release: nothing more to do",
        broken by [IgnoresVersion];
    marks::a_marked_key_never_runs_again,
        "at_most_once: done before the work, and done for everybody from then on",
        broken by [AgesTooFast];
    marks::a_mark_that_is_finished_keeps_its_window,
        "at_most_once, complete: finished, and the window does not slide",
        broken by [Loses(Aged)];
    marks::a_mark_that_is_rejected_keeps_its_window,
        "at_most_once, renew and reject: rejected, and the window does not slide",
        broken by [Loses(Aged)];
    marks::a_mark_is_free_after_its_ttl,
        "at_most_once after the ttl: marked anew, with a higher fence",
        broken by [NeverAges];
    marks::a_mark_can_be_taken_back_before_the_work,
        "done and started, undo by its holder: released, with a higher fence and what it found",
        broken by [KeepsReleased];
    resets::a_reset_fences_its_holder_out,
        "whatever stands, reset: whoever held it can neither complete, renew nor release",
        broken by [IgnoresVersion];
    resets::a_reset_raises_the_fence_and_deletes_nothing,
        "claimed or done, reset: released, without a holder, with a higher fence; absent or released: unchanged",
        broken by [Loses(Fence), ForgetsOnRelease];
    resets::a_live_claim_is_reset_only_when_forced,
        "claimed within the lease, reset: held, unchanged; by force: released, history unknown",
        broken by [Loses(Lease), Loses(Runs)];
    resets::a_key_that_was_reset_runs_again,
        "reset, claim: won, and told that an earlier run may have had its effect",
        broken by [KeepsReleased, Loses(Ended)];
}
Exact {
    claims::a_fence_rises_across_deletion,
        "a fence rises also across the deletion of the record",
        broken by [Loses(Fence)];
    zombies::a_holder_whose_record_was_deleted_is_fenced_out,
        "absent, complete, reject, renew and release: fenced out, and nothing is created",
        broken by [IgnoresVersion];
    zombies::a_holder_cannot_touch_the_claim_that_followed_a_deletion,
        "claimed anew after a deletion, complete, reject, renew and release: fenced out",
        broken by [VersionRepeats];
    claims::a_client_clock_decides_nothing,
        "who may take a key over is decided by the store's clock, not by a client's",
        broken by [AgesByClients], waivable;
    ends::a_failed_run_is_remembered,
        "a claim after a failed run knows of it, and of how many there were",
        broken by [Loses(Runs), Loses(Ended)];
    ends::a_crash_is_remembered,
        "a claim after a lapse knows that the run's end is unknown",
        broken by [Loses(Runs)];
    ends::a_mutex_that_succeeded_leaves_a_fresh_history,
        "a mutex whose work succeeded is released as fresh, with no runs",
        broken by [KeepsReleased];
    lost::a_claim_whose_answer_was_lost_is_won_once,
        "a claim whose answer was lost is won, once, and excludes others",
        broken by [Plants(Planted::NoToken), Loses(Holder)];
    lost::a_takeover_whose_answer_was_lost_is_won_once,
        "a take-over whose answer was lost is won, once, and excludes others",
        broken by [Loses(Holder)];
    lost::a_mark_whose_answer_was_lost_is_won_once,
        "a mark whose answer was lost is read back: done and ours means run",
        broken by [Loses(Holder)];
    lost::a_renewal_whose_answer_was_lost_is_recorded,
        "a renewal whose answer was lost is recorded",
        broken by [Loses(Holder)];
    lost::a_completion_whose_answer_was_lost_is_recorded,
        "a completion whose answer was lost is recorded, and the key is done",
        broken by [Loses(Holder)];
    lost::a_rejection_whose_answer_was_lost_is_recorded,
        "a rejection whose answer was lost is recorded, and the key is done as rejected",
        broken by [Loses(Holder)];
    lost::a_release_whose_answer_was_lost_is_recorded,
        "a release whose answer was lost is recorded, and harms nobody who followed",
        broken by [Loses(Holder)];
    lost::a_late_write_changes_nothing,
        "a write that lands late, after its key moved on, changes nothing",
        broken by [IgnoresVersion];
    undone::a_claim_that_was_given_up_leaves_the_key_free,
        "a claim that nobody knows of is undone, whether it has landed or lands later",
        broken by [Plants(Planted::NoUndo)];
    undone::a_create_that_lands_late_is_made_impossible,
        "a create that was given up cannot land any more",
        broken by [Plants(Planted::LookUpOnly)];
    undone::a_takeover_that_was_given_up_leaves_the_holder_its_claim,
        "a take-over that was given up cannot land any more, and the holder that stood can still complete",
        broken by [Plants(Planted::LookUpOnly)];
    undone::a_mark_that_cannot_be_read_back_is_undone,
        "a mark that cannot be read back starts no work and is undone",
        broken by [Plants(Planted::NoUndo)];
    undone::a_dropped_claim_is_given_back_as_it_was_found,
        "a claim dropped before its work is released, with the history and the receipt that it found",
        broken by [Plants(Planted::NoUndo)];
    undone::a_win_counts_only_with_half_its_lease_left,
        "a win that is known late is renewed first, or given back",
        broken by [Plants(Planted::StaleWin)];
    resets::a_reset_whose_answer_was_lost_is_made_once,
        "a reset whose answer was lost is made, once",
        broken by [IgnoresVersion];
    resets::a_reset_never_meets_who_came_after,
        "a reset meets the record that it found, and never the claim that follows",
        broken by [Plants(Planted::ResetsAnybody)];
}
Maintenance {
    maintain::a_check_passes_where_records_are_kept,
        "a store that keeps records says so when it is asked",
        broken by [FailsCheck];
    maintain::a_purge_removes_only_what_has_expired,
        "a purge removes what has expired, and nothing else",
        broken by [PurgesAll, PurgesNothing, PurgesOverLimit];
    maintain::a_purge_never_removes_a_key_that_was_claimed_anew,
        "a purge never removes a key that was claimed anew after it looked",
        broken by [PurgesBlindly];
    maintain::a_store_that_cannot_purge_says_what_does,
        "a store that refuses to purge says what collects the garbage instead",
        broken by [RefusesToPurge];
    maintain::a_list_brings_every_key_once,
        "the pages of a list bring every key once, as it stands",
        broken by [ListsTwice, LeavesOut, ListsForEver, AgesTooFast], waivable;
    maintain::a_list_brings_what_its_filter_takes,
        "a list brings what its filter takes, and nothing else",
        broken by [IgnoresPrefix, IgnoresState], waivable;
    maintain::a_record_that_is_not_understood_hides_no_other,
        "a record that cannot be understood is listed as such, and hides no other",
        broken by [StopsAtNewer, HidesNewer], waivable;
}
}
