-- The new tables take the place of the old ones, in a separate transaction: where a long read keeps it waiting, only this
-- is repeated.

-- Reads wait behind this lock as long as it waits itself.
set local lock_timeout = '1s';

drop table message, message_token, fact, earlier_attempt, removed_attempt, lane_fact, root_blessing, history,
  history_attempt, conversion;
alter table new_message rename to message;
alter table new_message_token rename to message_token;
alter table new_fact rename to fact;
alter table new_earlier_attempt rename to earlier_attempt;
alter table new_removed_attempt rename to removed_attempt;
alter table new_lane_fact rename to lane_fact;
alter table new_root_blessing rename to root_blessing;
alter table new_history rename to history;
