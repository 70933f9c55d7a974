            may_remove_password: false,
